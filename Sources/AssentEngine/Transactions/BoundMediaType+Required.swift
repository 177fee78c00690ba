package import AssentCore

extension BoundMediaType {
    /// The media type of a field's value, which must be `essence`.
    ///
    /// - Throws: ``EngineError`` `unsupportedMediaType`.
    package static func required(_ essence: String, _ text: String) throws(EngineError) -> BoundMediaType {
        guard let type = BoundMediaType(text), type.essence == essence else { throw refusal(of: essence) }
        return type
    }

    /// What is said to any other than `essence`.
    package static func refusal(of essence: String) -> EngineError {
        EngineError(.unsupportedMediaType, "A body that is to be approved must be sent as \(essence), in UTF-8.")
    }
}
