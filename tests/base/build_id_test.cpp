#include "base/build_id.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(BuildId, OfTheCoreIsNotThatOfWhoeverAsks) {
  EXPECT_NE(core_build_id(), 0U);
  // Were it exported, the dynamic linker would take the first one for all parts.
  EXPECT_EQ(::dlsym(RTLD_DEFAULT, "_ZN7stretto8build_idEv"), nullptr);
  EXPECT_NE(::dlsym(RTLD_DEFAULT, "_ZN7stretto13core_build_idEv"), nullptr) << "the test is stale";
}

}  // namespace
}  // namespace stretto
