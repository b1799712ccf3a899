#include "core/processor.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "core/error.h"

namespace krigtune::processor_test {

using enum VectorUnitKind;

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(VectorUnit, IsTheFastestOfTheProcessorWhereNoneIsNamed) {
  EXPECT_EQ(choose_vector_unit("", {kPlain}), kPlain);
  EXPECT_EQ(choose_vector_unit("", {kPlain, kAvx2}), kAvx2);
  EXPECT_EQ(choose_vector_unit("", {kPlain, kAvx2, kAvx512}), kAvx512);
}

TEST(VectorUnit, IsTheOneThatIsNamed) {
  const std::vector<VectorUnitKind> all = {kPlain, kAvx2, kAvx512};
  for (const VectorUnitKind kind : all) EXPECT_EQ(choose_vector_unit(to_string(kind), all), kind);
}

TEST(VectorUnit, IsRefusedWhereTheProcessorDoesNotHaveIt) {
  EXPECT_EQ(error_of([] {
              choose_vector_unit("avx512", {kPlain, kAvx2});
            }),
            "KRIGTUNE_VECTOR_UNIT is 'avx512', which this processor does not have; "
            "unset it, or use one that this machine has: plain, avx2");
}

TEST(VectorUnit, IsRefusedWhereItHasNoKnownName) {
  EXPECT_EQ(
      error_of([] { choose_vector_unit("AVX2", {kPlain}); }),
      "KRIGTUNE_VECTOR_UNIT is 'AVX2', which is not a vector unit; unset it, or use one that this machine has: plain");
}

TEST(VectorUnit, OfThisProcessBelongsToItsProcessor) {
  const std::vector<VectorUnitKind> here = processor_vector_units();
  EXPECT_EQ(here.front(), kPlain);
  const char* named = std::getenv("KRIGTUNE_VECTOR_UNIT");
  EXPECT_EQ(chosen_vector_unit(), choose_vector_unit(named == nullptr ? "" : named, here));
}

}  // namespace krigtune::processor_test
