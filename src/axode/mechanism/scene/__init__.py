"""What pictures of a mechanism show, as plain data: solids, floors, contacts."""
