import AssentCore
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

extension RequestError {
    /// Why a body could not be read. Nothing but the client and its connection can make that fail.
    init(reading error: any Error) {
        self =
            error is BodyTimeout
            ? RequestError(408, "The request's body did not come in time.")
            : RequestError(400, "The request's body cannot be read.")
    }
}

extension Request {
    /// Reads the whole body.
    ///
    /// - Throws: ``RequestError`` 413 when it is larger than `limit`, 408 when it does not come in time, 400 when it
    ///   does not come to its end.
    func bytes(upTo limit: Int) async throws -> [UInt8] {
        // A length that is too large needs no reading, and a client that waits to be asked for the body is not asked.
        if let length = headers[.contentLength].flatMap(Int.init), length > limit { throw Self.tooLarge(limit) }
        do {
            return [UInt8](buffer: try await body.collect(upTo: limit))
        } catch is NIOTooManyBytesError {
            throw Self.tooLarge(limit)
        } catch let error as CancellationError {
            throw error
        } catch {
            throw RequestError(reading: error)
        }
    }

    private static func tooLarge(_ limit: Int) -> RequestError {
        RequestError(413, "The request is larger than \(limit) bytes.")
    }

    /// Reads a JSON object; an empty body is an empty object, whatever its media type says.
    ///
    /// - Throws: ``RequestError`` 413, 415 for another media type, 400 for what is not a JSON object.
    func jsonObject(upTo limit: Int = 1 << 20) async throws -> JSONObject {
        try Self.jsonObject(try await bytes(upTo: limit), contentType: headers[.contentType])
    }

    /// The JSON object in `bytes`, as ``jsonObject(upTo:)``.
    static func jsonObject(_ bytes: [UInt8], contentType: String?) throws -> JSONObject {
        guard !bytes.isEmpty else { return JSONObject() }
        guard contentType.map(isJSON) ?? true else {
            throw RequestError(415, "The request's media type must be application/json.")
        }
        do {
            guard let object = try JSONValue.parse(bytes).object else {
                throw RequestError(400, "The request must be a JSON object.")
            }
            return object
        } catch let error as JSONError {
            throw RequestError(400, "The request is not JSON that the server accepts. \(error.detail)")
        }
    }

    /// Whether a `Content-Type` names JSON.
    static func isJSON(_ contentType: String) -> Bool {
        // As nearly all clients write it.
        if contentType.utf8.elementsEqual("application/json".utf8) { return true }
        let isSpace: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        var type = contentType.utf8.prefix { $0 != UInt8(ascii: ";") }.drop(while: isSpace)
        while let last = type.last, isSpace(last) { type.removeLast() }
        let lower = type.map(\.asciiLowercased)
        return lower.elementsEqual("application/json".utf8) || lower.suffix(5).elementsEqual("+json".utf8)
    }

    /// More parameters than any request has. Each look for one goes through all of them, and a request is looked at up
    /// to ten times.
    private static let parameterLimit = 256

    /// A query parameter; `nil` when it is missing. A plus sign is a space, as browsers write it. One that occurs twice
    /// is refused.
    func query(_ name: String) throws(RequestError) -> String? {
        let text = uri.query ?? ""
        guard text.utf8.count(where: { $0 == UInt8(ascii: "&") }) < Self.parameterLimit else {
            throw RequestError(400, "The query has more than \(Self.parameterLimit) parameters.")
        }
        do {
            return try QueryString(text).single(name)
        } catch {
            throw RequestError(400, "The parameter \(name) cannot be read: \(error.detail).")
        }
    }

    /// A query parameter that is a truth value. AM's clients send `ForceAuth=false` on every step: presence says
    /// nothing.
    func flag(_ name: String) throws -> Bool {
        try query(name)?.lowercased() == "true"
    }
}
