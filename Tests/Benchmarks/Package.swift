// swift-tools-version: 6.2
import PackageDescription

/// A package of its own, unseen by the root build: what measures is not what ships.
let package = Package(
  name: "Benchmarks",
  dependencies: [.package(name: "siwa", path: "../..")],
  targets: [
    .executableTarget(
      name: "bare-server",
      dependencies: [.product(name: "HTTPServer", package: "siwa"), .product(name: "EventLoop", package: "siwa")])
  ]
)
