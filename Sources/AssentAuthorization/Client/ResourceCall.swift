public import AssentCore
import Foundation
public import HTTPTypes

/// A call to a resource, made by ``get(_:headers:)``, ``post(_:json:headers:)-(_,JSONValue,_)`` and their like.
public struct ResourceCall: Sendable {
    /// The method.
    public var method: HTTPRequest.Method

    /// The absolute URL, used exactly as it is written.
    public var url: String

    /// More header fields.
    public var headers: HTTPFields

    /// The content. It must be replayable for the call to be repeated after an approval.
    public var body: HTTPBody?

    /// How long it may take and how much may come back.
    public var limits = HTTPLimits()

    /// A call.
    public init(_ method: HTTPRequest.Method, _ url: String, headers: HTTPFields = [:], body: HTTPBody? = nil) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }

    /// Reads something.
    public static func get(_ url: String, headers: HTTPFields = [:]) -> ResourceCall {
        ResourceCall(.get, url, headers: headers)
    }

    /// Removes something.
    public static func delete(_ url: String, headers: HTTPFields = [:]) -> ResourceCall {
        ResourceCall(.delete, url, headers: headers)
    }

    /// Sends bytes of a media type.
    public static func post(
        _ url: String, body: [UInt8], contentType: String, headers: HTTPFields = [:]
    ) -> ResourceCall {
        ResourceCall(.post, url, headers: headers, body: HTTPBody(body), contentType: contentType)
    }

    /// Sends JSON exactly as it is given.
    public static func post(_ url: String, json: JSONValue, headers: HTTPFields = [:]) -> ResourceCall {
        ResourceCall(.post, url, headers: headers, json: json)
    }

    /// Sends a value as JSON.
    ///
    /// - Throws: what encoding it throws.
    public static func post(_ url: String, json: some Encodable, headers: HTTPFields = [:]) throws -> ResourceCall {
        ResourceCall(.post, url, headers: headers, body: try encoded(json), contentType: jsonType)
    }

    /// Replaces with JSON exactly as it is given.
    public static func put(_ url: String, json: JSONValue, headers: HTTPFields = [:]) -> ResourceCall {
        ResourceCall(.put, url, headers: headers, json: json)
    }

    /// Replaces with a value as JSON.
    ///
    /// - Throws: what encoding it throws.
    public static func put(_ url: String, json: some Encodable, headers: HTTPFields = [:]) throws -> ResourceCall {
        ResourceCall(.put, url, headers: headers, body: try encoded(json), contentType: jsonType)
    }

    /// Changes by JSON exactly as it is given.
    public static func patch(_ url: String, json: JSONValue, headers: HTTPFields = [:]) -> ResourceCall {
        ResourceCall(.patch, url, headers: headers, json: json)
    }

    private static let jsonType = "application/json"

    private static func encoded(_ value: some Encodable) throws -> HTTPBody {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return HTTPBody(Array(try encoder.encode(value)))
    }

    private init(_ method: HTTPRequest.Method, _ url: String, headers: HTTPFields, json: JSONValue) {
        self.init(
            method, url, headers: headers, body: HTTPBody(json.serializedBytes()), contentType: Self.jsonType)
    }

    private init(
        _ method: HTTPRequest.Method, _ url: String, headers: HTTPFields, body: HTTPBody, contentType: String
    ) {
        self.init(method, url, headers: headers, body: body)
        self.headers[.contentType] = contentType
    }

    package func httpCall() throws -> HTTPCall {
        try HTTPCall(method, url: url, headerFields: headers, body: body, limits: limits)
    }
}
