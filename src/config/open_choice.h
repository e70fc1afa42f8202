#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

namespace stretto::config {

struct Alternative;
struct Schema;

/// The options of one part of an OpenChoice, behind an interface: only the part's own files need to
/// know their type. config/open_part.h has the only implementation.
class OpenPart {
 public:
  virtual ~OpenPart() = default;

  virtual const std::type_info& type() const = 0;  ///< of the options struct
  virtual void* options() = 0;                     ///< a struct of that type
  virtual const void* options() const = 0;
  virtual std::unique_ptr<OpenPart> clone() const = 0;
  /// Takes the values of a part of the same type(). Keys that were bound before stay valid.
  virtual void assign(const OpenPart& other) = 0;
  /// Adds the keys of the options below `path`. The schema points into the options.
  virtual void bind(const std::string& path, Schema& schema) = 0;
};

/// A part that an OpenChoice may be.
struct OpenAlternative {
  const char* name;                     ///< T::kName of the options struct T
  std::unique_ptr<OpenPart> (*make)();  ///< with its defaults
  Alternative (*alone)(const std::string& path);
};

/// One of several parts, as Choice is, for a list of parts that rooms above bring: the types of
/// their options are not known here.
class OpenChoice {
 public:
  static constexpr bool is_choice = true;
  using Alternatives = std::vector<OpenAlternative>;

  /// Begins with the first alternative, of which there must be one.
  /// @param alternatives  gives the same list at each call, or a longer one
  explicit OpenChoice(Alternatives (*alternatives)());
  OpenChoice(const OpenChoice& other);
  /// Where both have the same part, keys that were bound before stay valid.
  OpenChoice& operator=(const OpenChoice& other);
  /// Throws std::bad_variant_access unless T is an alternative.
  template <class T>
  requires requires { T::kName; }
  OpenChoice& operator=(T chosen) {
    select(T::kName);
    as<T>() = std::move(chosen);
    return *this;
  }

  std::vector<std::string> names() const;  ///< in the order of the alternatives
  Alternatives alternatives() const { return alternatives_(); }

  const std::string& name() const { return name_; }
  template <class T>
  bool is() const {
    return part_->type() == typeid(T);
  }
  /// Throws std::bad_variant_access when another part is chosen.
  template <class T>
  const T& as() const {
    if (!is<T>()) throw std::bad_variant_access();
    return *static_cast<const T*>(std::as_const(*part_).options());
  }
  template <class T>
  T& as() {
    if (!is<T>()) throw std::bad_variant_access();
    return *static_cast<T*>(part_->options());
  }

  /// The part of this name with its defaults; what was chosen before is gone, unless it is the
  /// same. @return false, and nothing changes, when there is none
  bool select(std::string_view wanted);

  /// Where the key `name` lives. Whoever writes it calls select() too.
  std::string& name_to_bind() { return name_; }
  void bind_part(const std::string& path, Schema& schema) { part_->bind(path, schema); }

 private:
  Alternatives (*alternatives_)();
  std::string name_;
  std::unique_ptr<OpenPart> part_;  // never null: there are no moves, and a copy has its own
};

}  // namespace stretto::config
