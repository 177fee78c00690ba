/// Why a text is not accepted as JSON. Errors are equal when their codes are; no text in them holds any of the JSON.
public struct JSONError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What happened, and where.
    public let detail: String

    /// Where in the text it is, in bytes from 0; `nil` when it is about all of the text.
    public let offset: Int?

    /// The limit that was reached; `nil` when it was none.
    public let limit: Int?

    /// What to do about it.
    public var suggestion: String? {
        limit == nil
            ? "Check where the JSON comes from: it was changed on its way, or something else sent it."
            : "Raise the limit if JSON like this is expected."
    }

    /// A stable name of a kind of failure; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The text has more bytes than allowed.
        public static let tooLarge = Code("tooLarge")
        /// Arrays and objects are nested deeper than allowed.
        public static let tooDeep = Code("tooDeep")
        /// There are more values than allowed.
        public static let tooManyValues = Code("tooManyValues")
        /// The text ends in the middle.
        public static let unexpectedEnd = Code("unexpectedEnd")
        /// A byte cannot stand where it stands.
        public static let unexpectedByte = Code("unexpectedByte")
        /// A string holds bytes that are not UTF-8, an escape that is half of a surrogate pair, or more than 64 marks
        /// (accents and the like) in a row.
        public static let invalidText = Code("invalidText")
        /// An object names a member twice.
        public static let duplicateMember = Code("duplicateMember")
    }

    private init(_ code: Code, _ detail: String, offset: Int? = nil, limit: Int? = nil) {
        self.code = code
        self.detail = detail
        self.offset = offset
        self.limit = limit
    }

    /// The text has more bytes than `limit`.
    package static func tooLarge(limit: Int) -> JSONError {
        JSONError(.tooLarge, "The JSON has more than \(limit) bytes.", limit: limit)
    }

    /// It is nested deeper than `limit`.
    package static func tooDeep(limit: Int) -> JSONError {
        JSONError(.tooDeep, "The JSON is nested deeper than \(limit).", limit: limit)
    }

    /// It has more values than `limit`.
    package static func tooManyValues(limit: Int) -> JSONError {
        JSONError(.tooManyValues, "The JSON has more than \(limit) values.", limit: limit)
    }

    /// The text ends in the middle.
    package static let unexpectedEnd = JSONError(.unexpectedEnd, "The JSON ends in the middle.")

    /// A byte cannot stand at this offset.
    package static func unexpectedByte(offset: Int) -> JSONError {
        JSONError(.unexpectedByte, "The byte at offset \(offset) cannot stand there in JSON.", offset: offset)
    }

    /// The string at this offset is not proper text.
    package static func invalidText(offset: Int) -> JSONError {
        JSONError(.invalidText, "The JSON string at offset \(offset) is not proper text.", offset: offset)
    }

    /// The member at this offset was named before.
    package static func duplicateMember(offset: Int) -> JSONError {
        JSONError(.duplicateMember, "A JSON object names a member again at offset \(offset).", offset: offset)
    }
}
