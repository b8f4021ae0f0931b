"""How torchvision's wheel, which is built for CUDA, is imported beside a torch for the CPU: with `DECLARED` as its
environment's `sitecustomize.py`. The names of its compiled operators are declared; transformers' processors call none.
"""

DECLARED = """
import torch
library = torch.library.Library("torchvision", "DEF")
for name in ("roi_align", "ps_roi_align", "roi_pool", "ps_roi_pool", "deform_conv2d"):
    library.define(f"{name}(Tensor x) -> Tensor")
    library.define(f"_{name}_backward(Tensor x) -> Tensor")
for name in ("nms", "qnms", "qroi_align"):
    library.define(f"{name}(Tensor x) -> Tensor")
"""
