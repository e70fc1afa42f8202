#pragma once

#include <memory>
#include <string>
#include <typeinfo>

#include "config/open_choice.h"
#include "config/schema.h"

namespace stretto::config {

/// The options of a part, with the struct T that has them.
template <class T>
class PartOf final : public OpenPart {
 public:
  const std::type_info& type() const override { return typeid(T); }
  void* options() override { return &options_; }
  const void* options() const override { return &options_; }
  std::unique_ptr<OpenPart> clone() const override { return std::make_unique<PartOf>(*this); }
  void assign(const OpenPart& other) override {
    options_ = *static_cast<const T*>(other.options());
  }
  void bind(const std::string& path, Schema& schema) override {
    config::bind(options_, path, schema);
  }

 private:
  T options_;
};

/// The options struct T as a part of an OpenChoice. It instantiates the declarations of all keys of
/// T: call it in one source file.
template <class T>
OpenAlternative open_alternative() {
  return {.name = T::kName,
          .make = [] { return std::unique_ptr<OpenPart>(std::make_unique<PartOf<T>>()); },
          .alone = [](const std::string& path) { return detail::alternative<T>(path); }};
}

}  // namespace stretto::config
