import AssentCore
import AssentSigningProtocol

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
    ///   - body: the request's body.
    ///   - query: the request's query, as it is forwarded.
    /// - Returns: the lines, in the policy's order.
    /// - Throws: ``EngineError``: `tooLarge`, `unsupportedMediaType` for a body that is neither JSON nor a form by its
    ///   media type, `invalidRequest` for one that cannot be shown as it is: broken, ambiguous, a field missing, one
    ///   with characters that could mislead, or a member or parameter that the user would not see.
    static func render(
        _ policy: Policy, of body: ShownBody, query: String?
    ) throws(EngineError) -> [DisplayLine] {
        guard !policy.display.isEmpty else { return [] }
        let request = try ShownContent(
            body, query: query, needsBody: policy.display.contains { ($0.list ?? $0.place).isInBody })
        let placed = try PlacedRule.all(policy.display, in: request)
        var lines: [DisplayLine] = []
        for line in placed {
            let value =
                if let type = line.rule.type { try typed(type, line, in: request) } else {
                    try single(line, in: request)
                }
            // A line that is longer cannot be signed by a device.
            guard isShowable(value, limit: maximumValue) else { throw unshowable(line.name) }
            lines.append(DisplayLine(label: line.rule.label, value: value))
        }
        if let place = request.firstUnseen(shown: placed.flatMap(\.places), leftOut: policy.leftOut) {
            throw refusal("\(place) is neither shown to the user nor left out by name.")
        }
        return lines
    }

    /// What is said of a request that cannot be shown.
    static func refusal(_ why: String) -> EngineError {
        .invalidRequest("The request cannot be shown for approval: \(why)")
    }

    /// A single value as it was sent, with its unit.
    private static func single(_ line: PlacedRule, in request: ShownContent) throws(EngineError) -> String {
        let value = try text(line.field, line.name, in: request)
        guard let suffix = line.suffix else { return value }
        let unit = try text(suffix, line.suffixName, in: request)
        // Otherwise `1` and `000.00 EUR` would be read as one amount.
        guard isUnit(unit) else {
            throw refusal(
                "\(line.suffixName) is not a currency or a unit. Digits, blanks and punctuation behind a value could be read as part of it."
            )
        }
        return value + " " + unit
    }

    /// A value of a type, as a signing template would read it.
    private static func typed(
        _ type: FieldType, _ line: PlacedRule, in request: ShownContent
    ) throws(EngineError) -> String {
        var found = request.value(at: line.field)
        if let suffix = line.suffix {
            found = [
                "amount": .string(try text(line.field, line.name, in: request)),
                "currency": .string(try text(suffix, line.suffixName, in: request)),
            ]
        }
        guard let found else { throw refusal("\(line.name) is missing.") }
        do {
            let value = try FieldValue(found, type: type, at: line.name)
            try value.checkReading(at: line.name)
            // Digits stand as they were sent: a device groups those of an IBAN, and this line is a text.
            if case .iban(let iban) = value { return iban }
            return value.display
        } catch {
            throw refusal(DisplayText.escapedForTerminal(String(error.detail.prefix(200))))
        }
    }

    /// Whether `label` can be shown.
    static func isLabel(_ label: String) -> Bool { isShowable(label, limit: maximumLabel) }

    private static func text(
        _ place: ContentPointer, _ name: String, in request: ShownContent
    ) throws(EngineError) -> String {
        let text: String? =
            switch request.value(at: place) {
            case .string(let text): text
            case .number(let number): number.description
            case .bool(let value): value ? "true" : "false"
            default: nil
            }
        guard let text else {
            throw refusal("\(name) is missing, or not a single value.")
        }
        guard isShowable(text, limit: maximumValue) else { throw unshowable(name) }
        return text
    }

    private static func unshowable(_ field: String) -> EngineError {
        refusal("\(field) is empty, too long or has forbidden characters, or more than three blanks in a row.")
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
