#pragma once

#include <string>
#include <vector>

#include "config/field.h"

namespace stretto::nn {

/// `model.init` of every family, whose entries nn/init_rules.h reads.
template <class Owner>
config::FieldDecl<Owner, std::vector<std::string>> init_field(
    std::vector<std::string> Owner::*member) {
  return config::field(
             member, "init",
             "\"PATTERN NAME SETTING=NUMBER\": first weights of matching tensors, first match "
             "wins, the others keep the model's rule. NAME: xavier_uniform, xavier_normal, "
             "he_uniform, he_normal, orthogonal (gain=1), uniform (a), normal, "
             "truncated_normal (std; drawn again beyond 2 std), constant (value), zeros or ones")
      .also_called({"initializer", "weight_init", "init_method", "kernel_initializer",
                    "weight_initializer"});
}

}  // namespace stretto::nn
