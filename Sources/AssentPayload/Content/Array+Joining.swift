extension [UInt8] {
    /// Adds `more` at the end. Where there was nothing the array is `more` then, and no byte is copied.
    package mutating func join(_ more: [UInt8]) {
        if isEmpty { self = more } else { self += more }
    }
}
