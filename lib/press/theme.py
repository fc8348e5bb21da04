"""A small Sphinx extension: what Jupyter Book and its theme add and the book does not want.

The theme shows an empty bar with a second search field on top of each page. Jupyter Book always loads sphinx-thebe,
which declares its constants twice (an error in the console) and points at a script on another host; our pages need no
kernel, so its listeners and its style are taken away.
"""


def setup(app) -> dict:
    for listeners in app.events.listeners.values():
        listeners[:] = [each for each in listeners if not each.handler.__module__.startswith("sphinx_thebe")]
    app.connect("config-inited", _as_the_book_wants_it)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _as_the_book_wants_it(app, config) -> None:
    config.html_theme_options.update({f"navbar_{place}": [] for place in ("start", "center", "end", "persistent")},
                                     show_navbar_depth=2)
    styles = app.registry.css_files
    styles[:] = [(name, attributes) for name, attributes in styles if "thebe" not in name]
