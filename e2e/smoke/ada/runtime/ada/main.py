# Synthetic: stands for the code that ada runs on.
print("ada")
