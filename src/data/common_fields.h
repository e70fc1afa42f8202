#pragma once

#include "config/field.h"

/// Declarations of keys that `[data]` has in several families, so that a key has the same words,
/// the same bounds and the same other names in each. @tparam Options  a section with the key
namespace stretto::data {

template <class Options>
auto max_tokens_field() {
  using namespace config;
  return field(&Options::max_tokens, "max_tokens",
               "bound of the real tokens of one micro-batch, special ones included", at_least(1),
               {.unit = "tokens"})
      .also_called({"mini_batch_words", "tokens_per_batch", "batch_tokens"});
}

template <class Options>
auto max_samples_field() {
  using namespace config;
  return field(&Options::max_samples, "max_samples",
               "bound of samples in one micro-batch, beside max_tokens; 0 = none", at_least(0),
               {.unit = "samples"})
      .also_called({"max_batch_size", "mini_batch"})
      .also_called({"batch_size", "per_device_train_batch_size", "train_batch_size"},
                   "data.max_tokens bounds a micro-batch too");
}

template <class Options>
auto max_unknown_field() {
  using namespace config;
  return field(&Options::max_unknown, "max_unknown",
               "training refuses text of which a larger share of tokens is unknown; it warns above "
               "0.01",
               between(0, 1), {.change = Change::kFree});
}

/// The cache of data whose tokens alone are kept.
template <class Options>
auto token_cache_field() {
  using namespace config;
  return field(&Options::cache_dir, "cache_dir",
               "where token caches live; empty = stretto in the user's cache folder", any(),
               {.change = Change::kFree, .is_path = true})
      .also_called({"cache", "data_dir_cache", "tempdir"});
}

template <class Options>
auto prefetch_field() {
  using namespace config;
  return field(&Options::prefetch, "prefetch",
               "micro-batches that are made ready ahead of the model", between(1, 1024),
               {.unit = "micro-batches", .change = Change::kFree, .per_process = true})
      .also_called({"num_workers", "dataloader_num_workers", "prefetch_factor"});
}

}  // namespace stretto::data
