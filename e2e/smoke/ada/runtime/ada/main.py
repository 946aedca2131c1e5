print("ada")
