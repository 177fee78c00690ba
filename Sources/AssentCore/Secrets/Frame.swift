/// What goes into a hash or a key derivation (docs/transaction-signing.md, "Hashes and derived keys"): a label and
/// fields, each with its length, so that no two lists of fields have the same bytes.
package struct Frame: Hashable, Sendable {
    /// The label in ASCII, a zero byte, and the fields.
    package private(set) var bytes: [UInt8]

    /// A frame that has a label and no fields yet.
    package init(_ label: String) {
        bytes = []
        // Most frames have no more.
        bytes.reserveCapacity(128)
        bytes += label.utf8
        bytes.append(0)
    }

    /// A frame with these fields.
    package init(_ label: String, _ fields: Field...) {
        self.init(label)
        for field in fields { append(field) }
    }

    /// Adds a field with its length of 32 bits.
    package mutating func append(_ field: Field) {
        switch field {
        case .text(let text): append(content: text.utf8)
        case .bytes(let content): append(content: content)
        case .integer, .optional: append(content: field.bytes)
        }
    }

    private mutating func append(content: some Collection<UInt8>) {
        // Without an array of its own for the length: each sealed message has several frames.
        withUnsafeBytes(of: UInt32(truncatingIfNeeded: content.count).bigEndian) { bytes.append(contentsOf: $0) }
        bytes += content
    }

    /// One field of a frame.
    package enum Field: Hashable, Sendable {
        /// A text as UTF-8.
        case text(String)
        /// Bytes as they are.
        case bytes([UInt8])
        /// An integer of 64 bits.
        case integer(UInt64)
        /// *O*(x): a byte that says whether there is a value, and the value.
        case optional(String?)

        var bytes: [UInt8] {
            switch self {
            case .text(let text): Array(text.utf8)
            case .bytes(let bytes): bytes
            case .integer(let value): Frame.bigEndian(value)
            case .optional(.some(let text)): [1] + text.utf8
            case .optional(.none): [0]
            }
        }
    }

    package static func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }
}
