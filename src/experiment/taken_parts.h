#pragma once

#include <string>
#include <vector>

namespace stretto::experiment {

/// Which parts of a model begin with which parts of the model that `train.init_from` names. A part
/// is how the names of its tensors begin: "encoder.", "decoders.de.".
class TakenParts {
 public:
  /// @param entries  `train.init_only`; empty = each part begins with the one of its name
  /// @param stored   the names of the other model's tensors; not read without entries
  TakenParts(const std::vector<std::string>& entries, const std::vector<std::string>& stored);

  /// Whether a tensor of `own` is taken from the part `theirs`.
  bool takes(const std::string& own, const std::string& theirs) const;
  /// The same of tensors beside its table of tokens, `embedding.weight`.
  bool takes_layers(const std::string& own, const std::string& theirs) const;

 private:
  struct Tensor {
    std::string own, theirs;  ///< its name in both models
  };

  bool takes_beside(const std::string& left_out, const std::string& own,
                    const std::string& theirs) const;

  bool all_;
  std::vector<Tensor> tensors_;
};

}  // namespace stretto::experiment
