// `test_tuner loop` runs the tests of tests/run/loop_test.cpp, `test_tuner` all tests of the layer. GoogleTest's
// options and GTEST_FILTER work as usual: a filter that excludes tests ("-Loop.Stops*") is combined with the word, and
// one that selects tests replaces it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace {

// Returns the names of the tests in the file of `unit`, in the form of GoogleTest's filters; "" if there are none.
std::string tests_of(const std::string& unit) {
  const std::string file = "/" + unit + "_test.cpp";
  std::string names;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (!std::string(test.file()).ends_with(file)) continue;
      if (!names.empty()) names += ':';
      names.append(suite.name()).append(1, '.').append(test.name());
    }
  }
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (argc == 1) return RUN_ALL_TESTS();
  const std::string names = tests_of(argv[1]);
  if (argc > 2 || names.empty()) {
    std::fprintf(stderr, "usage: %s [<unit>] [GoogleTest's options]; there is no such unit\n", argv[0]);
    return 2;
  }
  // A filter that selects tests is kept: a death test starts this program again and names itself.
  const std::string filter = testing::GTEST_FLAG(filter);
  if (filter == "*") testing::GTEST_FLAG(filter) = names;
  if (filter.starts_with("-")) testing::GTEST_FLAG(filter) = names + filter;
  return RUN_ALL_TESTS();
}
