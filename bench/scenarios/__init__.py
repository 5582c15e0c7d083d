"""How each scenario is measured. catalogue.py lists the scenarios and their entries."""
