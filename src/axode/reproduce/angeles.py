from axode.reproduce.item import Item

ITEMS: tuple[Item, ...] = ()
