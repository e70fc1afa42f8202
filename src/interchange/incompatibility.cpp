#include "interchange/incompatibility.h"

namespace stretto::interchange {

std::string adapter_incompatibility(const nn::AdapterOptions& adapter) {
  return "model.adapter.dim = " + std::to_string(adapter.dim) +
         ": an adapter is not linear, so that it cannot be merged into weights as LoRA is";
}

}  // namespace stretto::interchange
