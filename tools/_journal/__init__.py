"""The commands of `aerotape journal` that copy a journal into a recording and back."""
