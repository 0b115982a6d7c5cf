import SQLite
import TestSupport
import Testing

@Suite struct DatabaseTests {
}
