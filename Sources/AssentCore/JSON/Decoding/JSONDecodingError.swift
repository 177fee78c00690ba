/// Why a JSON value is not what a type expects. Errors are equal when their codes are; no text holds any of the value.
public struct JSONDecodingError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// The members that lead to the place, from the outside in; an element of an array by its index.
    public let path: [String]

    /// What happened, and where.
    public let detail: String

    init(_ code: Code, at path: [any CodingKey], _ text: String) {
        self.code = code
        self.path = path.map { $0.intValue.map(String.init) ?? $0.stringValue }
        let place = self.path.map { DisplayText.escapedForTerminal(String($0.prefix(64))) }.joined(separator: ".")
        detail = place.isEmpty ? text : "\(place): \(text)"
    }

    /// A stable name of a kind of failure; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A member, an element or a value that must be there is absent or `null`.
        public static let missing = Code("missing")
        /// The value has another type.
        public static let wrongType = Code("wrongType")
        /// The number does not fit the type without losing anything.
        public static let outOfRange = Code("outOfRange")
        /// The value has the right type, and the one who decodes it does not accept it.
        public static let invalidValue = Code("invalidValue")
        /// The types are nested too deep.
        public static let tooDeep = Code("tooDeep")
    }
}
