#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "data/bad_samples.h"

namespace stretto::data {

/// `[data]` of labelled pictures: where they are, which classes they have, and how they fall into
/// micro-batches. What becomes of the pixels is image::AugmentOptions.
struct ImageDataOptions {
  std::vector<std::string> train, valid, test;
  std::string format = "auto";
  std::string path = "path";
  std::string label = "label";
  std::vector<std::string> classes;
  std::string bad_samples = "skip";  ///< a damaged picture is no reason to end an epoch
  int64_t max_bad_samples = 1000;
  int64_t max_samples = 64;
  bool drop_last = false;
  int64_t repeats = 1;
  std::string cache_dir;
  int64_t prefetch = 8;
  int64_t threads = 0;

  static auto file_fields() {
    using namespace config;
    using O = ImageDataOptions;
    const Meta path{.is_path = true, .takes_patterns = true};
    const Meta free_path{.change = Change::kFree, .is_path = true, .takes_patterns = true};
    return Fields{
        field(&O::train, "train",
              "pictures for training: folders with a folder of pictures a class, tar or tar.gz "
              "files of such folders, WebDataset shards, idx or CIFAR files, or tables of paths "
              "and labels; a last name such as train-*.tar stands for several files",
              any(), path)
            .also_called({"train_dir", "traindir", "train_folder", "data_dir", "imagefolder"}),
        field(&O::valid, "valid", "the same for validation", any(), path)
            .also_called({"dev", "val_dir", "valdir", "validation_dir", "valid_dir"}),
        field(&O::test, "test", "the same: what `stretto eval` takes by default", any(), free_path)
            .also_called({"test_dir", "testdir"}),
    };
  }

  static auto reading_fields() {
    using namespace config;
    using O = ImageDataOptions;
    const Meta reading{.change = Change::kReading};
    return Fields{
        field(&O::format, "format",
              "what the paths hold. auto: by the content of each. folder: a folder for each class. "
              "tar: an archive of such a folder, .gz or not. webdataset: archives of KEY.jpg with "
              "KEY.cls. idx: MNIST's files. cifar10, cifar100: the binary version of each. "
              "manifest: CSV, TSV or JSON lines with the columns data.path and data.label",
              one_of({"auto", "folder", "tar", "webdataset", "idx", "cifar10", "cifar100",
                      "manifest"}),
              reading)
            .also_called({"dataset_type", "file_format"})
            .value_also_called("folder", {"imagefolder", "image_folder", "folders"})
            .value_also_called("webdataset", {"wds"})
            .value_also_called("idx", {"mnist", "ubyte"})
            .value_also_called("manifest", {"csv", "tsv", "jsonl"}),
        field(&O::path, "path",
              "column of a manifest: the path of a picture, relative to the manifest's folder",
              any(), reading)
            .also_called({"path_column", "image_column", "image_column_name", "file_column"}),
        field(&O::label, "label", "column of a manifest: the name of the class", any(), reading)
            .also_called({"label_column", "label_column_name", "class_column"}),
        field(&O::classes, "classes",
              "the names of the classes in the order of their numbers; empty = those of the "
              "training pictures, in the order of their bytes (\"10\" before \"2\")")
            .also_called({"labels", "class_names", "label_list", "id2label"}),
    }
        .with(bad_sample_fields<O>());
  }

  static auto batch_fields() {
    using namespace config;
    using O = ImageDataOptions;
    return Fields{
        field(&O::max_samples, "max_samples", "pictures of one micro-batch", at_least(1),
              {.unit = "pictures"})
            .also_called({"batch_size", "per_device_train_batch_size", "train_batch_size",
                          "mini_batch", "max_batch_size"}),
        field(&O::drop_last, "drop_last",
              "training leaves out the last micro-batch of an epoch where it is smaller"),
        field(&O::repeats, "repeats",
              "how often a picture is in a micro-batch, each time augmented anew (repeated "
              "augmentation); an epoch then has as many micro-batches as with 1, and shows one of "
              "`repeats` pictures",
              between(1, 64))
            .also_called(
                {"aug_repeats", "ra_reps", "repeated_aug", "batch_augmentation", "num_repeats"}),
        field(&O::cache_dir, "cache_dir",
              "where headers of pictures, and pictures from tar.gz files, are kept for the next "
              "start; empty = stretto in the user's cache folder",
              any(), {.change = Change::kFree, .is_path = true})
            .also_called({"cache", "dataset_cache_dir"}),
        field(&O::prefetch, "prefetch", "micro-batches that are made ready ahead of the model",
              between(1, 1024),
              {.unit = "micro-batches", .change = Change::kFree, .per_process = true})
            .also_called({"prefetch_factor", "data_buffer_size"}),
        field(&O::threads, "threads",
              "that decode and augment pictures; 0 = the cores of this process", between(0, 1024),
              {.change = Change::kFree, .per_process = true})
            .also_called({"num_workers", "dataloader_num_workers", "workers", "data_threads"},
                         "threads, not processes"),
    };
  }

  static auto fields() { return file_fields().with(reading_fields()).with(batch_fields()); }
};

}  // namespace stretto::data
