#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "optim/arena.h"
#include "store/safetensors.h"

/// LoRA (nn/lora.h) in stored models: a linear map NAME that learns by it has, beside NAME.weight,
///
///     NAME.lora_a [P r, in], NAME.lora_b [out, r]
///     NAME.lora_parts [P, 2]     rows of each part, and what its B A is multiplied by
///
/// Adapters (nn/adapter.h) are tensors like others here: no weight stands for them.
namespace stretto::runs {

/// Tensors as if they were a file; some of them were made and live here.
struct MadeWeights {
  store::SafetensorsFile file;
  std::vector<at::Tensor> values = {};
  int64_t num_merged = 0;            ///< linear maps
  int64_t num_new_adapters = 0;      ///< that begin as they stand in the model
  std::set<std::string> added = {};  ///< names of what begins so: these adapters, and LoRA
};

/// Whether a model file has LoRA.
bool has_lora(const store::SafetensorsFile& file);

/// The tensors of a model file with each NAME.weight replaced by W + scale B A, and nothing left of
/// LoRA: those of a model without it that computes the same. What is packed
/// (runs/unpacked_weights.h) comes back as F32; other tensors of a file without LoRA as they are.
/// The result looks into `file`, which must outlive it.
///
/// @param where  the file, for messages
/// Throws Error(kBadData) that lists what does not fit together.
MadeWeights merge_lora(const store::SafetensorsFile& file, const std::string& where);

/// What is read when weights are taken over.
enum class LoraValues : uint8_t {
  kAll,    ///< merged weights, and what the model adds itself
  kNames,  ///< names and shapes alone, to see whether weights fit
};

/// For `train.init_from`: merge_lora(), and of the model that begins, as they stand in its arena,
/// LoRA and those adapters that the file lacks. So any model begins with what the other run
/// computes, LoRA at zero, and new adapters as identities.
MadeWeights weights_to_begin_with(const store::SafetensorsFile& file, const std::string& where,
                                  const optim::Arena& arena, LoraValues values);

}  // namespace stretto::runs
