public import AssentCore
public import Foundation

/// The claims of a JWT (RFC 7519 §4) over the JSON object that they came in.
///
/// The typed accessors are `nil` both when a claim is absent and when its value has the wrong type; ``JWTValidation``
/// tells these two apart.
public struct JWTClaims: Sendable, Hashable {
    /// All claims.
    public private(set) var object: JSONObject

    /// Claims that are built or were read elsewhere.
    public init(_ object: JSONObject = JSONObject()) {
        self.object = object
    }

    /// Reads the payload of a JWT.
    ///
    /// - Throws: ``JOSEError`` with `malformed` when it is not a JSON object, or names a claim twice.
    public init(payload: [UInt8]) throws(JOSEError) {
        let value: JSONValue
        do {
            value = try JSONValue.parse(payload, limits: JSONLimits(bytes: 1 << 20, depth: 32, values: 20_000))
        } catch {
            throw JOSEError(.malformed, "The claims are not acceptable JSON. \(error.detail)")
        }
        guard let object = value.object else { throw JOSEError(.malformed, "The claims are not a JSON object.") }
        self.object = object
    }

    /// The claim called `name`; setting `nil` removes it.
    public subscript(name: String) -> JSONValue? {
        get { object[name] }
        set { object[name] = newValue }
    }

    /// The claims as a type of the app's own.
    ///
    /// ```swift
    /// struct Person: Decodable { let sub: String, email: String? }
    /// let person = try claims.decode(Person.self)
    /// ```
    ///
    /// An integer keeps all its digits, a `Date` is a NumericDate (RFC 7519 §2).
    ///
    /// - Throws: `JSONDecodingError`, which names the claim: `missing`, `wrongType`, `outOfRange` or `invalidValue`.
    public func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try object.decode(type) }

    /// The claims as the payload of a JWS.
    public var payload: [UInt8] { JSONValue.object(object).serializedBytes() }

    /// Issuer.
    public var iss: String? {
        get { object["iss"]?.string }
        set { object["iss"] = newValue.map(JSONValue.string) }
    }

    /// Subject.
    public var sub: String? {
        get { object["sub"]?.string }
        set { object["sub"] = newValue.map(JSONValue.string) }
    }

    /// Audiences; empty when there are none. One is written as a string, several as an array.
    public var aud: [String] {
        get { object["aud"].flatMap { value in value.string.map { [$0] } ?? value.strings } ?? [] }
        set {
            switch newValue.count {
            case 0: object["aud"] = nil
            case 1: object["aud"] = .string(newValue[0])
            default: object["aud"] = .array(newValue.map(JSONValue.string))
            }
        }
    }

    /// When it expires.
    public var exp: Date? {
        get { date("exp") }
        set { object["exp"] = newValue.flatMap(Self.numericDate) }
    }

    /// From when on it is valid.
    public var nbf: Date? {
        get { date("nbf") }
        set { object["nbf"] = newValue.flatMap(Self.numericDate) }
    }

    /// When it was issued.
    public var iat: Date? {
        get { date("iat") }
        set { object["iat"] = newValue.flatMap(Self.numericDate) }
    }

    /// Its unique name.
    public var jti: String? {
        get { object["jti"]?.string }
        set { object["jti"] = newValue.map(JSONValue.string) }
    }

    /// A claim that is a NumericDate (RFC 7519 §2), with or without a fraction, from 1970 to the year 9999; `nil`
    /// otherwise.
    public func date(_ name: String) -> Date? {
        object[name].flatMap(Self.time)
    }

    /// The time that a claim's value is, if it is a NumericDate as ``date(_:)`` takes it.
    static func time(_ value: JSONValue) -> Date? {
        guard let seconds = value.number?.double, (0...lastSecond).contains(seconds) else { return nil }
        return Date(timeIntervalSince1970: seconds)
    }

    /// A NumericDate in whole seconds, rounded down; `nil` outside of 1970 to 9999.
    static func numericDate(_ date: Date) -> JSONValue? {
        let seconds = date.timeIntervalSince1970.rounded(.down)
        guard (0...lastSecond).contains(seconds) else { return nil }
        return .integer(Int64(seconds))
    }

    private static let lastSecond: Double = 253_402_300_799
}
