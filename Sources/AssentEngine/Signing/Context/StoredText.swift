import AssentSigningProtocol
import AssentStore

/// A value that a row keeps as text.
protocol StoredText: Sendable {
    /// The value of a text; `nil` for a text that no value has.
    init?(stored: String)

    var stored: String { get }
}

/// Names that the program knows. Statements have them as text, so that the indices of some states serve them.
protocol SQLConstant: StoredText, RawRepresentable<String>, CaseIterable {}

extension StoredText where Self: RawRepresentable<String> {
    init?(stored: String) { self.init(rawValue: stored) }

    var stored: String { rawValue }
}

extension FixedBytes: StoredText {
    init?(stored: String) { self.init(text: stored) }

    var stored: String { text }
}

extension ContainerState: SQLConstant {}
extension SigningKeyUsage: SQLConstant {}
extension PasswordSlot: SQLConstant {}
extension CommitMode: SQLConstant {}
extension DocumentKind: SQLConstant {}
extension DeviceEvent: SQLConstant {}
extension OnlineKeyUse: SQLConstant {}
extension Keystore: StoredText {}

extension SQL.StringInterpolation {
    /// A value as an argument, or NULL.
    mutating func appendInterpolation(_ value: (some StoredText)?) { appendInterpolation(value?.stored) }

    /// A name that the program knows, as text in quotation marks.
    mutating func appendInterpolation(_ constant: some SQLConstant) { appendInterpolation(Self.list([constant])) }

    /// Such names with commas between them.
    mutating func appendInterpolation(_ constants: [some SQLConstant]) { appendInterpolation(Self.list(constants)) }

    private static func list(_ constants: [some SQLConstant]) -> SQL {
        SQL(verbatim: constants.map { "'\($0.rawValue)'" }.joined(separator: ", "))
    }
}

extension SQLRow {
    /// A value that must be there.
    ///
    /// - Throws: `StoreError` `corrupt`, also for a text that no value has.
    func value<Value: StoredText>(_ name: String) throws(StoreError) -> Value {
        guard let value = Value(stored: try text(name)) else {
            throw StoreError(.corrupt, "column \(name) has an unknown value")
        }
        return value
    }

    /// A value, or `nil` for NULL.
    func optional<Value: StoredText>(_ name: String) throws(StoreError) -> Value? {
        try optionalText(name) == nil ? nil : try value(name)
    }
}
