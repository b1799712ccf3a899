#include "forecast/kept_models.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>

namespace krigtune::kept_models_test {

class KeptModelsTest : public testing::Test {
 protected:
  // Uses model `number` so often, and returns how many models were made until now.
  int use(std::size_t number, int times) {
    for (int i = 0; i < times; ++i) {
      EXPECT_EQ(*models_.of(number,
                            [&] {
                              ++made_;
                              return std::make_shared<const std::size_t>(number);
                            }),
                number);
    }
    return made_;
  }

  forecast::KeptModels<std::size_t> models_{4, 100, 5};
  int made_ = 0;
};

TEST_F(KeptModelsTest, MakesEachOnce) {
  EXPECT_EQ(use(0, 50), 1);
  EXPECT_EQ(use(3, 50), 2);
  models_.keep({1});  // there are no more uses than 100
  EXPECT_EQ(use(0, 1), 2);
}

TEST_F(KeptModelsTest, ForgetsWhatWasUsedOftenAndDoesNotGoOn) {
  use(0, 60);
  use(1, 60);
  use(2, 5);
  models_.keep({1});
  EXPECT_EQ(use(1, 1), 3);
  EXPECT_EQ(use(2, 1), 3);
  EXPECT_EQ(use(0, 1), 4);
}

TEST_F(KeptModelsTest, LeavesAForgottenOneToThoseThatUseIt) {
  const auto used = models_.of(0, [] { return std::make_shared<const std::size_t>(7); });
  for (int i = 0; i < 200; ++i) models_.of(0, [] { return nullptr; });
  models_.keep({});
  EXPECT_EQ(*used, 7U);
}

}  // namespace krigtune::kept_models_test
