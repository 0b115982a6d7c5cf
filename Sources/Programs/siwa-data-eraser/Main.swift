import AccountServices

/// See `siwa-data-eraser --help`.
@main
struct SiwaDataEraser {
  static func main() { DataEraserProgram.main() }
}
