import AssentCore

/// The key providers of hardware that work without being told more, in the order in which they are tried.
enum HardwareKeys {
    static var providers: [any KeyProvider] { [] }
}
