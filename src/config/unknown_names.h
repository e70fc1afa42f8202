#pragma once

#include <set>
#include <string>
#include <vector>

#include "config/problem.h"
#include "config/schema.h"
#include "config/suggest.h"
#include "config/toml.h"

namespace stretto::config {

/// The answers to names that a schema does not have: keys, sections and lists of tables. Each says
/// what was probably meant: a key of another part (config/choice.h), of another section, one that
/// is spelled alike, or one that goes by this name in other toolkits (config/suggest.h).
class UnknownNames {
 public:
  /// @param defaults     whose values hints show
  /// @param wrong_names  keys that name a part that there is not: its keys are no problem of their
  ///                     own
  /// @param problems     gets the answers; only the first kMostProblemsShown have suggestions
  UnknownNames(const Schema& schema, const Schema& defaults, std::set<std::string> wrong_names,
               std::vector<Problem>& problems);

  /// Adds the problem of a name that the schema does not have; none where another one explains it.
  /// @param is_slip  inside a section that answer() has reported
  /// @return the section that was meant, whose keys those of the table `node` are; mostly empty:
  ///         there is nothing more to read
  std::string answer(const std::string& path, const toml::node& node, const Place& place,
                     bool is_slip);

 private:
  void problem(const Place& place, const std::string& what, const std::string& hint,
               const std::string& key, std::vector<std::string> also = {});
  bool no_such_entry(const std::string& path, const Place& place);
  bool is_of_own_parts(const std::string& path) const;
  bool of_another_part(const std::string& path, const Place& place, bool is_slip);
  bool of_another_section(const std::string& path, const Place& place);
  bool list(const std::string& path, const Place& place, bool suggests);
  std::string section(const std::string& path, const toml::table& inner, const Place& place,
                      bool suggests);
  std::vector<std::string> same_leaf_below(const std::string& path) const;
  std::string did_you_mean(const std::vector<std::string>& paths) const;
  std::string as_header(const std::string& path) const;
  std::string key_hint(const Suggestion& near) const;
  std::string no_key_hint(const Suggestion& near, const std::string& path) const;
  std::string where_to_look(const std::string& path) const;

  const Schema& schema_;
  const Schema& defaults_;
  const std::set<std::string> wrong_names_;
  std::vector<Problem>& problems_;
};

}  // namespace stretto::config
