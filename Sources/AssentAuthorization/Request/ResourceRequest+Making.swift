public import AssentCore
import Foundation
public import HTTPTypes

extension ResourceRequest {
    /// Reads something.
    public static func get(
        _ path: String, parameters: JSONObject? = nil, headers: HTTPFields = [:]
    ) -> ResourceRequest {
        ResourceRequest(path: path, parameters: parameters, headers: headers)
    }

    /// Reads the header fields of something.
    public static func head(
        _ path: String, parameters: JSONObject? = nil, headers: HTTPFields = [:]
    ) -> ResourceRequest {
        ResourceRequest(path: path, method: .head, parameters: parameters, headers: headers)
    }

    /// Removes something.
    public static func delete(
        _ path: String, parameters: JSONObject? = nil, headers: HTTPFields = [:]
    ) -> ResourceRequest {
        ResourceRequest(path: path, method: .delete, parameters: parameters, headers: headers)
    }

    /// Sends bytes of a media type.
    public static func post(
        _ path: String, body: [UInt8], contentType: String, headers: HTTPFields = [:]
    ) -> ResourceRequest {
        ResourceRequest(path, .post, HTTPBody(body), contentType, headers)
    }

    /// Sends JSON exactly as it is given.
    public static func post(_ path: String, json: JSONValue, headers: HTTPFields = [:]) -> ResourceRequest {
        ResourceRequest(path, .post, HTTPBody(json.serializedBytes()), ParametersEncoding.json.mediaType, headers)
    }

    /// Sends a value as JSON.
    ///
    /// - Throws: what encoding it throws.
    public static func post(
        _ path: String, json: some Encodable, headers: HTTPFields = [:]
    ) throws -> ResourceRequest {
        ResourceRequest(path, .post, try encoded(json), ParametersEncoding.json.mediaType, headers)
    }

    /// Sends a form with files.
    public static func post(
        _ path: String, multipartData: [MultipartPart], parameters: JSONObject? = nil, headers: HTTPFields = [:]
    ) -> ResourceRequest {
        ResourceRequest(
            path: path, method: .post, parameters: parameters, multipartData: multipartData, headers: headers)
    }

    /// Replaces with JSON exactly as it is given.
    public static func put(_ path: String, json: JSONValue, headers: HTTPFields = [:]) -> ResourceRequest {
        ResourceRequest(path, .put, HTTPBody(json.serializedBytes()), ParametersEncoding.json.mediaType, headers)
    }

    /// Replaces with a value as JSON.
    ///
    /// - Throws: what encoding it throws.
    public static func put(
        _ path: String, json: some Encodable, headers: HTTPFields = [:]
    ) throws -> ResourceRequest {
        ResourceRequest(path, .put, try encoded(json), ParametersEncoding.json.mediaType, headers)
    }

    /// Changes by JSON exactly as it is given.
    public static func patch(_ path: String, json: JSONValue, headers: HTTPFields = [:]) -> ResourceRequest {
        ResourceRequest(path, .patch, HTTPBody(json.serializedBytes()), ParametersEncoding.json.mediaType, headers)
    }

    private static func encoded(_ value: some Encodable) throws -> HTTPBody {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return HTTPBody(Array(try encoder.encode(value)))
    }

    private init(
        _ path: String, _ method: HTTPRequest.Method, _ body: HTTPBody, _ contentType: String, _ headers: HTTPFields
    ) {
        var headers = headers
        headers[.contentType] = contentType
        self.init(path: path, method: method, body: body, headers: headers)
    }
}
