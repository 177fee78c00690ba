import AssentCore

extension OTPAuthURI {
    /// Reads an `otpauth` URI, or the OATH part of an `mfauth` URI.
    ///
    /// As AM's clients do: a query's issuer wins over the label's; without issuer the account's name serves; base 32 is
    /// read with any padding; `uid`, `oid` and `policies`, and in `mfauth` the issuer, are base 64. A parameter that
    /// occurs twice and characters that deceive on a screen are refused; unknown parameters are not looked at.
    ///
    /// - Throws: ``OTPError`` with the code of what is wrong.
    public init(_ uri: String) throws(OTPError) {
        guard uri.utf8.count <= OTPAuthText.uriLimit else { throw OTPError.longURI }
        guard let colon = uri.firstIndex(of: ":"), uri[colon...].hasPrefix("://") else { throw OTPError(.invalidURI) }
        let scheme = uri[..<colon].lowercased()
        guard scheme == "otpauth" || scheme == "mfauth" else { throw OTPError(.wrongScheme) }
        let rest = uri[colon...].dropFirst(3).prefix { $0 != "#" }
        let path = rest.prefix { $0 != "?" }
        let parameters = try Self.parameters(rest.dropFirst(path.count).dropFirst())
        let type = path.prefix { $0 != "/" }
        guard type.lowercased() == "totp" || type.lowercased() == "hotp" else { throw OTPError(.wrongScheme) }

        guard let text = parameters["secret"] else { throw OTPError(.invalidSecret, "The URI has no secret.") }
        guard let secret = Base32.decodeLeniently(text) else {
            throw OTPError(.invalidSecret, "The URI's secret is not base 32.")
        }
        var (issuer, account) = try Self.label(path.dropFirst(type.count).dropFirst())
        if let given = parameters["issuer"], !given.isEmpty {
            issuer = scheme == "mfauth" ? OTPAuthText.decoded(given) : given
        }
        try self.init(
            issuer: issuer, account: account, secret: Secret(bytes: secret),
            moving: try Self.moving(isTime: type.lowercased() == "totp", parameters),
            algorithm: try Self.algorithm(parameters), digits: try Self.digits(parameters))
        userID = parameters["uid"].map(OTPAuthText.decoded)
        resourceID = parameters["oid"].map(OTPAuthText.decoded)
        policies = try Self.policies(parameters)
        image = try Self.image(parameters)
        color = parameters["b"]
        for text in [issuer, account, userID, resourceID, color] { try OTPAuthText.check(text ?? "") }
    }

    static func parameters(_ query: Substring) throws(OTPError) -> [String: String] {
        var parameters: [String: String] = [:]
        let pairs = query.split(separator: "&")
        guard pairs.count <= 32 else { throw OTPError(.tooLarge, "The URI has more than 32 parameters.") }
        for pair in pairs {
            let name = pair.prefix { $0 != "=" }
            guard let key = OTPAuthText.percentDecoded(name),
                let value = OTPAuthText.percentDecoded(pair.dropFirst(name.count).dropFirst())
            else {
                throw OTPError(.invalidURI, "The URI has a broken escape, such as % without two hexadecimal digits.")
            }
            guard parameters.updateValue(value, forKey: key) == nil else {
                throw OTPError(.invalidURI, "The URI has a parameter twice.")
            }
        }
        return parameters
    }

    static func label(_ raw: Substring) throws(OTPError) -> (issuer: String, account: String) {
        var parts = raw.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        if parts.count == 1, let escape = raw.firstRange(of: "%3A") ?? raw.firstRange(of: "%3a") {
            parts = [String(raw[..<escape.lowerBound]), String(raw[escape.upperBound...])]
        }
        var names: [String] = []
        for part in parts {
            guard let name = OTPAuthText.percentDecoded(part) else {
                throw OTPError(.invalidURI, "The URI has a broken escape, such as % without two hexadecimal digits.")
            }
            names.append(String(name.drop { $0 == " " }))
        }
        guard names.allSatisfy({ !$0.contains("../") }) else {
            throw OTPError(.invalidURI, "The URI's label has a path in it.")
        }
        return names.count == 2 ? (names[0], names[1]) : ("", names.first ?? "")
    }

    private static func moving(isTime: Bool, _ parameters: [String: String]) throws(OTPError) -> Moving {
        if isTime {
            guard let text = parameters["period"] else { return .time(period: 30) }
            guard let period = number(text), TOTP.allowedPeriods.contains(Int(period)) else {
                throw OTPError(.invalidPeriod)
            }
            return .time(period: Int(period))
        }
        guard let text = parameters["counter"] else { return .counter(0) }
        guard let counter = number(text) else { throw OTPError(.invalidCounter) }
        return .counter(UInt64(counter))
    }

    private static func algorithm(_ parameters: [String: String]) throws(OTPError) -> OTPAlgorithm {
        guard let name = parameters["algorithm"] else { return .sha1 }
        guard let algorithm = OTPAlgorithm(name: name) else { throw OTPError(.invalidAlgorithm) }
        return algorithm
    }

    private static func digits(_ parameters: [String: String]) throws(OTPError) -> Int {
        guard let text = parameters["digits"] else { return 6 }
        guard let digits = number(text), HOTP.allowedDigits.contains(Int(digits)) else {
            throw OTPError(.invalidDigits)
        }
        return Int(digits)
    }

    private static func policies(_ parameters: [String: String]) throws(OTPError) -> JSONObject? {
        guard let text = parameters["policies"] else { return nil }
        let limits = JSONLimits(bytes: 4096, depth: 8, values: 200)
        guard let bytes = OTPAuthText.base64(text), let value = try? JSONValue.parse(bytes, limits: limits),
            let object = value.object
        else {
            throw OTPError(.invalidURI, "The URI's policies are not a JSON object.")
        }
        return object
    }

    private static func image(_ parameters: [String: String]) throws(OTPError) -> String? {
        guard let text = parameters["image"], !text.isEmpty else { return nil }
        for candidate in [text, OTPAuthText.decoded(text)] {
            try OTPAuthText.check(candidate)
            let start = candidate.prefix(8).lowercased()
            if start.hasPrefix("https://") || start.hasPrefix("http://") { return candidate }
        }
        throw OTPError(.invalidURI, "The URI's image is not a URL.")
    }

    /// Decimal digits only: no sign, no space.
    private static func number(_ text: String) -> Int64? {
        guard (1...19).contains(text.utf8.count), text.utf8.allSatisfy(\.isASCIIDigit) else { return nil }
        return Int64(text)
    }
}

extension OTPError {
    static let longURI = OTPError(.tooLarge, "The URI has more than \(OTPAuthText.uriLimit) bytes.")
}
