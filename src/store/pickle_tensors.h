#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/safetensors.h"

/// The pickles of PyTorch, of which tensors alone are read.
///
/// A pickle is a program for a machine with a stack. Python's machine calls any function that the
/// program names. This one knows the instructions that a dict of tensors needs, and calls nothing:
/// the few names that such a dict has are words to it, and any other name is refused.
namespace stretto::store {

/// Where a tensor lies in a storage, in elements.
struct PickledTensor {
  std::string_view name;  ///< as `storage` a view into the pickle
  DType dtype = DType::kF32;
  std::string_view storage;  ///< its key: the file `data/<key>`
  int64_t storage_size = 0;  ///< elements of the whole storage
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;

  bool is_contiguous() const;
  int64_t num_elements() const;  ///< at most storage_size
};

/// A storage that the pickle refers to, whether or not a tensor of the dict lies in it.
struct PickledStorage {
  std::string_view key;
  DType dtype = DType::kF32;
};

/// A dict of tensors, in its order, and the end of its pickle.
struct PickledDict {
  std::vector<PickledTensor> tensors;
  std::vector<PickledStorage> storages;  ///< one for each reference; a key may stand twice
  size_t num_bytes = 0;                  ///< of the pickle; more may follow it
};

/// Reads a dict of tensors: `model.state_dict()`, or the checkpoint of a training program, a dict
/// with such a dict as its `state_dict`, `model_state_dict` or `model`, beside which anything may
/// stand that is plain, such as an epoch, a score or the tensors of an optimizer.
///
/// Each tensor lies within its storage and repeats no element. What is held
/// beside `bytes` is within an Allowance: a pickle may ask for one value as often as it likes.
/// Throws Error(kBadData) that names what else the pickle asks for or holds, or the byte at which
/// it is malformed.
PickledDict parse_pickled_tensors(std::string_view bytes, std::string_view where);

/// What stands around the dict in files that PyTorch wrote before 1.6: numbers and lists of
/// strings.
struct PickledPlain {
  std::string integer;                    ///< little-endian bytes; empty when it is something else
  std::vector<std::string_view> strings;  ///< views into the pickle
  size_t num_bytes = 0;
};
PickledPlain parse_pickled_plain(std::string_view bytes, std::string_view where);

}  // namespace stretto::store
