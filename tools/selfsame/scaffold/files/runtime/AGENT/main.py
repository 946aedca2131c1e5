# Synthetic: stands for the code that AGENT runs on.
print("AGENT")
