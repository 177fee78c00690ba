import AssentCore

/// Makes what the user is shown out of the request's own body and query.
enum TransactionDisplay {
    /// The most lines that a policy may show.
    static let maximumLines = 16

    /// The longest label, in characters.
    static let maximumLabel = 40

    /// The longest value with its unit, in characters.
    static let maximumValue = 200

    /// The most places that a policy may leave out by name.
    static let maximumLeftOut = 64

    /// The lines that `policy` asks for; none when it shows nothing.
    ///
    /// - Parameters:
    ///   - policy: what is shown, and what is left out by name.
    ///   - content: the request's body.
    ///   - query: the request's query, as it is forwarded.
    /// - Returns: the lines, in the policy's order.
    /// - Throws: ``EngineError``: `tooLarge`, `unsupportedMediaType` for a body that is neither JSON nor a form by its
    ///   media type, `invalidRequest` for one that cannot be shown as it is: broken, ambiguous, a field missing, one
    ///   with characters that could mislead, or a member or parameter that the user would not see.
    static func render(
        _ policy: Policy, of content: RequestContent?, query: String?
    ) throws(EngineError) -> [DisplayField] {
        guard !policy.display.isEmpty else { return [] }
        let shown = policy.display.flatMap { [$0.field, $0.suffix].compactMap(\.self) }.map(ContentPointer.init(field:))
        let request = try ShownContent(content, query: query, needsBody: shown.contains { $0.part == .body })
        var lines: [DisplayField] = []
        for rule in policy.display {
            var value = try text(rule.field, in: request)
            if let suffix = rule.suffix {
                let unit = try text(suffix, in: request)
                // Otherwise `1` and `000.00 EUR` would be read as one amount.
                guard isUnit(unit) else {
                    throw .invalidRequest(
                        "The request cannot be shown for approval: \(suffix) is not a currency or a unit. Digits, blanks and punctuation behind a value could be read as part of it."
                    )
                }
                value += " " + unit
            }
            // A line that is longer cannot be signed by a device.
            guard isShowable(value, limit: maximumValue) else { throw unshowable(rule.field) }
            lines.append(DisplayField(label: rule.label, value: value))
        }
        if let place = request.firstUnseen(shown: shown, leftOut: policy.leftOut) {
            throw .invalidRequest(
                "The request cannot be shown for approval: \(place) is neither shown to the user nor left out by name.")
        }
        return lines
    }

    /// Whether `label` can be shown.
    static func isLabel(_ label: String) -> Bool { isShowable(label, limit: maximumLabel) }

    private static func text(_ field: String, in request: ShownContent) throws(EngineError) -> String {
        let text: String? =
            switch request.value(at: ContentPointer(field: field)) {
            case .string(let text): text
            case .number(let number): number.description
            case .bool(let value): value ? "true" : "false"
            default: nil
            }
        guard let text else {
            throw .invalidRequest(
                "The request cannot be shown for approval: \(field) is missing, or not a single value.")
        }
        guard isShowable(text, limit: maximumValue) else { throw unshowable(field) }
        return text
    }

    private static func unshowable(_ field: String) -> EngineError {
        .invalidRequest(
            "The request cannot be shown for approval: \(field) is empty, too long or has forbidden characters, or more than three blanks in a row."
        )
    }

    /// Whether a text behind a value is read as its currency or unit: letters and symbols.
    private static func isUnit(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .nonspacingMark,
                .spacingMark, .currencySymbol, .otherSymbol:
                true
            default: scalar == "%" || scalar == "/"
            }
        }
    }

    /// Not blank, and nothing in it that a screen would obey instead of show, or that hides what follows.
    private static func isShowable(_ text: String, limit: Int) -> Bool {
        (try? DisplayText(text, limit: limit)) != nil && !DisplayText.isBlankOrSpread(text)
    }
}
