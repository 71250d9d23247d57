"""Files as data, checked before they are used; no model is known here."""
