import AssentCore

/// The body of a request as its user can see it. It is read when that is first needed, and once, however many resources
/// the request is about.
final class ShownBody: Sendable {
    /// Whether its members are the parameters of a form.
    let isForm: Bool

    private let content: RequestContent?
    private let read: @Sendable (RequestContent?) throws(EngineError) -> JSONValue?
    private let known = Locked<Result<JSONValue?, EngineError>?>(nil)

    /// The body of a request of which this is known; `read` is ``reading(_:)`` but in tests.
    init(
        _ content: RequestContent?,
        read: @escaping @Sendable (RequestContent?) throws(EngineError) -> JSONValue? = ShownBody.reading
    ) {
        self.content = content
        self.read = read
        isForm = Self.mediaType(of: content)?.essence == FormEncoding.mediaType
    }

    /// What it says.
    ///
    /// - Parameter isNeeded: whether something in it is to be shown, so that there must be one.
    /// - Returns: the content as JSON; an empty object when the body is missing and may be.
    /// - Throws: ``EngineError``: `tooLarge`; `unsupportedMediaType` for a body that is neither JSON nor a form by its
    ///   media type; `invalidRequest` for one that two programs could read differently.
    func value(isNeeded: Bool) throws(EngineError) -> JSONValue {
        let result = known.withLock { known -> Result<JSONValue?, EngineError> in
            if let known { return known }
            let result: Result<JSONValue?, EngineError>
            do throws(EngineError) {
                result = .success(try read(content))
            } catch {
                result = .failure(error)
            }
            known = result
            return result
        }
        if let value = try result.get() { return value }
        guard !isNeeded else { throw Self.refusal }
        return .object(JSONObject())
    }

    /// Reads a body; `nil` when the request has no body and no media type.
    static func reading(_ content: RequestContent?) throws(EngineError) -> JSONValue? {
        let bytes = content?.body ?? []
        let type = mediaType(of: content)
        if type?.isJSON == true { return try BoundJSON.parse(bytes, limits: ShownContent.limits) }
        if type?.essence == FormEncoding.mediaType {
            guard bytes.count <= ShownContent.limits.bytes else { throw BoundJSON.tooLarge }
            return try ShownContent.parameters(String(decoding: bytes, as: UTF8.self), of: "body")
        }
        guard bytes.isEmpty, content?.mediaType == nil else { throw refusal }
        return nil
    }

    private static func mediaType(of content: RequestContent?) -> BoundMediaType? {
        content?.mediaType.flatMap(BoundMediaType.init)
    }

    private static var refusal: EngineError { BoundMediaType.refusal(of: "application/json or as a form") }
}
