#include "nn/compressed.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <set>
#include <utility>

#include "nn/linear.h"

namespace stretto::nn {
namespace {

constexpr const char* kWeightName = "weight";

/// The parameter `weight` of a module where it may be codes, else undefined.
at::Tensor codes_of_module(const torch::nn::Module& module) {
  if (dynamic_cast<const TakesCodes*>(&module) == nullptr) return {};
  const auto* linear = dynamic_cast<const LinearImpl*>(&module);
  if (linear != nullptr && linear->lora) return {};
  const auto parameters = module.named_parameters(/*recurse=*/false);
  const at::Tensor* weight = parameters.find(kWeightName);
  const bool is_matrix = weight != nullptr && weight->defined() && weight->dim() == 2 &&
                         weight->is_cpu() && weight->scalar_type() == at::kFloat;
  return is_matrix ? *weight : at::Tensor();
}

/// Calls visit(name, parameter) for each parameter that may be codes.
template <class Visit>
void for_each_of_codes(const torch::nn::Module& module, const std::string& prefix,
                       const Visit& visit) {
  if (const at::Tensor weight = codes_of_module(module); weight.defined())
    visit(prefix + kWeightName, weight);
  for (const auto& child : module.named_children())
    for_each_of_codes(*child.value(), prefix + child.key() + '.', visit);
}

at::Tensor parameter_of_codes(const torch::nn::Module& model, const std::string& name) {
  at::Tensor found;
  for_each_of_codes(model, "", [&](const std::string& here, const at::Tensor& weight) {
    if (here == name) found = weight;
  });
  return found;
}

}  // namespace

bool takes_codes(const torch::nn::Module& model, const std::string& name) {
  return parameter_of_codes(model, name).defined();
}

std::vector<std::string> names_that_take_codes(const torch::nn::Module& model) {
  std::vector<std::string> names;
  for_each_of_codes(model, "", [&](const std::string& name, const at::Tensor& /*weight*/) {
    names.push_back(name);
  });
  return names;
}

void set_compressed(torch::nn::Module& model, const std::string& name,
                    std::shared_ptr<const kernels::QuantisedMatrix> matrix) {
  at::Tensor weight = parameter_of_codes(model, name);
  TORCH_CHECK(weight.defined(), "[nn] ", name, " cannot be codes of few bits");
  TORCH_CHECK(matrix != nullptr && weight.size(0) == matrix->outputs() &&
                  weight.size(1) == matrix->inputs(),
              "[nn] ", name, " is ", weight.sizes(), ", and its codes have another shape");
  const at::NoGradGuard no_gradient;
  weight.set_requires_grad(false);
  weight.mutable_grad() = at::Tensor();
  weight.set_data(kernels::stand_in(std::move(matrix)));
}

int64_t bytes_in_memory(const torch::nn::Module& model) {
  std::set<const at::TensorImpl*> seen;
  int64_t bytes = 0;
  const auto add = [&](const at::Tensor& numbers) {
    if (!numbers.defined() || !seen.insert(numbers.unsafeGetTensorImpl()).second) return;
    const auto codes = kernels::stood_for(numbers);
    bytes += codes ? codes->matrix->bytes() : static_cast<int64_t>(numbers.nbytes());
  };
  for (const at::Tensor& parameter : model.parameters()) add(parameter);
  for (const at::Tensor& buffer : model.buffers()) add(buffer);
  return bytes;
}

}  // namespace stretto::nn
