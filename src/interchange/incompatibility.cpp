#include "interchange/incompatibility.h"

#include "base/error.h"

namespace stretto::interchange {

std::string adapter_incompatibility(const nn::AdapterOptions& adapter) {
  return "model.adapter.dim = " + std::to_string(adapter.dim) +
         ": an adapter is not linear, so that it cannot be merged into weights as LoRA is";
}

void require_expressed(const std::string& what, const std::string& problem) {
  if (problem.empty()) return;
  throw Error(ExitCode::kUsage, what + ": " + problem,
              "docs/import-export.md lists what each format can express");
}

}  // namespace stretto::interchange
