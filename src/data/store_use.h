#pragma once

#include <filesystem>
#include <string>

#include "base/descriptor.h"

/// Who uses a store of the cache, and when it was opened last. A file `opened.KIND` in its folder
/// has that time, and the locks of all that have it open.
namespace stretto::data {

/// Makes the mark of a store that is being built. One without a mark is never removed.
void mark_new_store(const std::filesystem::path& folder, const std::string& kind);

/// Marks a store as opened now, and keeps it from being removed as long as it lives. Where the
/// system refuses, as in a cache that this user may only read, it does nothing.
class StoreUse {
 public:
  StoreUse() = default;
  /// @param folder  of the store
  /// @param kind    a name for files, as "documents"
  StoreUse(const std::filesystem::path& folder, const std::string& kind);
  /// Whether another process removes the store at this moment.
  bool is_too_late() const { return is_too_late_; }

 private:
  Descriptor mark_;
  bool is_too_late_ = false;
};

/// Removes the stores of a kind in a cache that nobody has opened for 30 days, nobody has open and
/// nobody builds, and says so in one line of the log. What the system refuses stays.
void remove_unused_stores(const std::filesystem::path& root, const std::string& kind);

}  // namespace stretto::data
