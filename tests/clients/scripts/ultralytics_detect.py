"""ultralytics: YOLOv8 from its configuration, trained for one epoch on generated images, then used to predict."""

import random
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from ultralytics import YOLO


def images(folder):
    rng = np.random.default_rng(0)
    for part in ("train", "val"):
        for kind in ("images", "labels"):
            (folder / kind / part).mkdir(parents=True)
        for number in range(8):
            Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(
                folder / "images" / part / f"{number}.png"
            )
            (folder / "labels" / part / f"{number}.txt").write_text("0 0.5 0.5 0.4 0.4\n")
    data = folder / "data.yaml"
    data.write_text(f"path: {folder}\ntrain: images/train\nval: images/val\nnames: {{0: box}}\n")
    return data


losses = []


def keep(trainer):
    losses.append([float(each) for each in trainer.loss_items.values()])


def main():
    random.seed(0)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as name:
        data = images(Path(name))
        model = YOLO("yolov8n.yaml", verbose=False)
        model.add_callback("on_train_batch_end", keep)
        model.train(
            data=str(data),
            epochs=1,
            imgsz=64,
            batch=4,
            workers=0,
            amp=False,
            plots=False,
            device=0 if torch.cuda.is_available() else "cpu",
            project=name,
            verbose=False,
            seed=0,
        )
        print("\nloss", *losses)
        found = model.predict(str(Path(name) / "images" / "val"), imgsz=64, verbose=False)
        print("boxes", sum(len(each.boxes) for each in found))


if __name__ == "__main__":
    main()
