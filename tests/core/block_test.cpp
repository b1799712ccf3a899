#include "core/block.h"

#include <gtest/gtest.h>

#include "user_error.h"

namespace krigtune::block_test {
namespace {

enum class Colour { kRed, kGreen };
constexpr EnumWords<Colour, 2> kColourWords = {{{"red", Colour::kRed}, {"green", Colour::kGreen}}};

struct Wheels {
  std::int64_t count = 4;
};

struct Car {
  double speed = 1.5;
  std::optional<double> range_km;
  int doors = 3;
  bool open = false;
  std::string name = "none";
  Colour colour = Colour::kRed;
  std::vector<std::string> owners;
  double length_m = 4.0;
  Wheels wheels;
};

Block<Car> car_block() {
  Block<Wheels> wheels("What it rolls on");
  wheels.key("count", &Wheels::count, integer(from_to(3, 18)), "how many");
  Block<Car> size("How large it is");
  size.key("length_m", &Car::length_m, number(above(0)), "metres");
  Block<Car> block("A car");
  block.key("speed", &Car::speed, number(from_to_below(0, 2), "0.5 for half of it"), "of light");
  block.key("range_km", &Car::range_km, number_or_null(above(0)), "on one charge");
  block.key("doors", &Car::doors, integer<int>(at_least(1)), "of them").written_where_changed();
  block.key("open", &Car::open, boolean(), "whether it has no roof");
  block.key("name", &Car::name, text(), "for people").required();
  block.key("colour", &Car::colour, one_of(kColourWords), "of its paint").no_default();
  block.key("owners", &Car::owners, texts(), "so far");
  block.group("size", size);
  block.block("wheels", &Car::wheels, wheels);
  block.noted("radio", schema::text(), "read elsewhere");
  block.check([](JsonObject& object, const Car& car) {
    if (car.open && car.speed > 1.0) object.fail("open", "too fast for that", "close it");
  });
  return block;
}

Car read(const std::string& text) {
  const Json json = parse_json(text, "c.json");
  return car_block().value_of(&json, "c.json", "/car");
}

std::string error_of(const std::string& text) {
  return user_error_of([&] { read(text); });
}

TEST(Block, WhatIsLeftOutOrNullKeepsItsDefault) {
  const Car car = read(R"({"name": "a", "speed": null, "range_km": null, "wheels": null, "size": null})");
  EXPECT_EQ(car.speed, 1.5);
  EXPECT_FALSE(car.range_km.has_value());
  EXPECT_EQ(car.doors, 3);
  EXPECT_EQ(car.length_m, 4.0);
  EXPECT_EQ(car.wheels.count, 4);
  EXPECT_EQ(car_block().value_of(nullptr, "c.json", "").name, "none") << "no block at all: nothing is required";
}

TEST(Block, ReadsEveryKindOfKey) {
  const Car car = read(R"({"name": "a", "speed": 0.25, "range_km": 300, "doors": 5, "open": true, "colour": "green",
                           "owners": ["x", "y"], "size": {"length_m": 3}, "wheels": {"count": 6}, "radio": "on"})");
  EXPECT_EQ(car.speed, 0.25);
  EXPECT_EQ(car.range_km, 300.0);
  EXPECT_EQ(car.doors, 5);
  EXPECT_TRUE(car.open);
  EXPECT_EQ(car.colour, Colour::kGreen);
  EXPECT_EQ(car.owners, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(car.length_m, 3.0);
  EXPECT_EQ(car.wheels.count, 6);
}

TEST(Block, WhatIsWrittenIsReadAgain) {
  const Block<Car> block = car_block();
  Car car = read(R"({"name": "a", "doors": 5, "range_km": 0.5, "colour": "green", "size": {"length_m": 0.1},
                     "wheels": {"count": 18}})");
  const Json once = block.written(car);
  EXPECT_EQ(once.dump(),
            R"({"speed":1.5,"range_km":0.5,"doors":5,"open":false,"name":"a","colour":"green","owners":[],)"
            R"("size":{"length_m":0.1},"wheels":{"count":18}})");
  EXPECT_EQ(block.written(block.value_of(&once, "c", "")), once);
  car.doors = 3;
  car.range_km.reset();
  EXPECT_FALSE(block.written(car).contains("doors")) << "its default is not written";
  EXPECT_TRUE(block.written(car)["range_km"].is_null());
}

TEST(Block, EveryMistakeNamesItsPlaceAndTheMend) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({})", "/car/name: is missing"},
      {R"({"nam": "a"})", "/car/nam: unknown key; did you mean 'name'?"},
      {R"({"name": "a", "speed": 2})",
       "/car/speed: 2 is out of range; write a number from 0 to below 2, as 0.5 for half of it"},
      {R"({"name": "a", "speed": -0.5})", "/car/speed: -0.5 is out of range"},
      {R"({"name": "a", "speed": "fast"})", "/car/speed: a number was expected"},
      {R"({"name": "a", "range_km": 0})", "/car/range_km: 0 is out of range; write a number above 0 or null"},
      {R"({"name": "a", "doors": 0})", "/car/doors: 0 is out of range; write an integer of 1 or more"},
      {R"({"name": "a", "doors": 1.5})", "/car/doors: a whole number was expected"},
      {R"({"name": "a", "colour": "blue"})", "/car/colour: unknown value 'blue'; known: red, green"},
      {R"({"name": "a", "wheels": {"count": 2}})",
       "/car/wheels/count: 2 is out of range; write an integer from 3 to 18"},
      {R"({"name": "a", "wheels": {"cont": 4}})", "/car/wheels/cont: unknown key; did you mean 'count'?"},
      {R"({"name": "a", "size": {"length_m": 0}})", "/car/size/length_m: 0 is out of range"},
      {R"({"name": "a", "size": 3})", "/car/size: an object was expected"},
      {R"({"name": "a", "open": true})", "/car/open: too fast for that; close it"},
      {R"({"name": "a", "open": true, "doers": 3})", "/car/doers: unknown key; did you mean 'doors'?"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(error_of(text).rfind("c.json: " + expected, 0), 0U) << text << "\n  gives " << error_of(text);
  }
}

TEST(Block, ItsSchemaSaysWhatItsReaderTakes) {
  const Json schema = car_block().schema();
  EXPECT_EQ(schema["description"], "A car");
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_EQ(schema["required"], Json::array({"name"}));
  EXPECT_EQ(schema["properties"]["speed"].dump(),
            R"({"description":"of light","type":["number","null"],"minimum":0,"exclusiveMaximum":2,"default":1.5})");
  EXPECT_EQ(schema["properties"]["range_km"].dump(),
            R"({"description":"on one charge","type":["number","null"],"exclusiveMinimum":0})");
  EXPECT_EQ(schema["properties"]["colour"].dump(), R"({"description":"of its paint","enum":["red","green",null]})");
  EXPECT_EQ(schema["properties"]["name"].dump(), R"({"description":"for people","type":"string"})");
  EXPECT_EQ(schema["properties"]["wheels"]["properties"]["count"]["default"], 4);
  EXPECT_FALSE(schema["properties"]["size"].contains("default"));
  EXPECT_FALSE(schema["properties"]["owners"].contains("default")) << "an empty list says nothing";
}

TEST(NumberLimits, SayWhatHolds) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(from_to(0, 2).hold(0) && from_to(0, 2).hold(2) && !from_to(0, 2).hold(2.5));
  EXPECT_TRUE(!above(0).hold(0) && above(0).hold(1e-300) && above(0).hold(1e300));
  EXPECT_TRUE(at_least(0).hold(0) && !at_least(0).hold(-1e-300));
  EXPECT_TRUE(from_to_below(0, 1).hold(0) && !from_to_below(0, 1).hold(1));
  EXPECT_TRUE(!above_up_to(0, 1).hold(0) && above_up_to(0, 1).hold(1));
  EXPECT_FALSE(from_to(0, 2).hold(nan) || NumberLimits().hold(nan));
  EXPECT_EQ(from_to(1, 1e6).text(), "from 1 to 1e6");
  EXPECT_EQ(above_up_to(0, 1).text(), "above 0 and up to 1");
  EXPECT_EQ(from_to_below(0.5, 1).text(), "from 0.5 to below 1");
  EXPECT_EQ(at_least(3).text(), "of 3 or more");
  EXPECT_EQ(NumberLimits().text(), "");
}

}  // namespace
}  // namespace krigtune::block_test
