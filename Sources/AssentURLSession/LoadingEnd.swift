import AssentAuthorization
import AssentCore
import Foundation
import HTTPTypes

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// How a request ended, in the form that `URLSession` knows.
enum LoadingEnd: Sendable {
    case reply(HTTPResponse, [UInt8])
    case failure(any Error)

    func tell(_ loader: URLProtocol) {
        switch self {
        case .failure(let error): loader.client?.urlProtocol(loader, didFailWithError: Self.wrapped(error))
        case .reply(let head, let content):
            do throws(URLProtocolError) {
                Self.hand(try Self.response(head, to: loader.request), content, to: loader)
            } catch {
                loader.client?.urlProtocol(loader, didFailWithError: Self.wrapped(error))
            }
        }
    }

    private static func response(
        _ head: HTTPResponse, to request: URLRequest
    ) throws(URLProtocolError) -> HTTPURLResponse {
        #if canImport(FoundationNetworking)
        if asksForPassword(head) {
            throw URLProtocolError(
                .challengeNotSupported, "The server wants a user name and a password.",
                suggestion: "Send the request by AuthorizedClient, or have the server ask in another way.")
        }
        #endif
        // One walk over the fields: reading them by name walks over all of them for each.
        let joined = Dictionary(head.headerFields.map { ($0.name, $0.value) }, uniquingKeysWith: { "\($0), \($1)" })
        let fields = Dictionary(uniqueKeysWithValues: joined.map { ($0.key.rawName, $0.value) })
        guard let url = request.url,
            let response = HTTPURLResponse(
                url: url, statusCode: head.status.code, httpVersion: "HTTP/1.1", headerFields: fields)
        else { throw URLProtocolError(.malformedReply, "The reply cannot be handed over.") }
        return response
    }

    /// In one piece: a completion handler gets the last piece alone.
    private static func hand(_ response: HTTPURLResponse, _ content: [UInt8], to loader: URLProtocol) {
        let client = loader.client
        #if !canImport(FoundationNetworking)
        if let next = Redirection.next(after: loader.request, response) {
            client?.urlProtocol(loader, wasRedirectedTo: next, redirectResponse: response)
            client?.urlProtocol(loader, didFailWithError: CocoaError(.userCancelled))
            return
        }
        #endif
        client?.urlProtocol(loader, didReceive: response, cacheStoragePolicy: .notAllowed)
        if !content.isEmpty { client?.urlProtocol(loader, didLoad: Data(content)) }
        client?.urlProtocolDidFinishLoading(loader)
    }

    /// Whether Foundation would look for a password: then it never ends the task, or sends the request anew past this
    /// class, without pins. It looks behind every comma, also where that is part of a text, and so does this.
    private static func asksForPassword(_ head: HTTPResponse) -> Bool {
        guard head.status == .unauthorized, let challenges = head.headerFields[.wwwAuthenticate] else { return false }
        let isSpace: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        return challenges.utf8.split(separator: UInt8(ascii: ",")).contains { challenge in
            let scheme = challenge.drop(while: isSpace).prefix { !isSpace($0) }
            return String(decoding: scheme, as: UTF8.self).lowercased() == "basic"
        }
    }

    /// The error that a task ends with.
    static func wrapped(_ error: any Error) -> NSError {
        let ours = error as? any AssentError
        return NSError(
            domain: AssentURLProtocol.errorDomain, code: effect(of: error).rawValue,
            userInfo: [
                NSUnderlyingErrorKey: error,
                NSLocalizedDescriptionKey: ours?.detail ?? "The request failed.",
                NSLocalizedRecoverySuggestionErrorKey: ours?.suggestion ?? "",
            ])
    }

    /// What is known of the request's effect. An error that says nothing of it leaves it open.
    private static func effect(of error: any Error) -> AssentURLProtocol.Effect {
        switch error {
        case let error as AuthorizationError: error.code == .outcomeUnknown ? .unknown : .none
        case let error as URLProtocolError: error.code == .malformedReply ? .unknown : .none
        default: AuthorizedClient.saysUnsent(error) ? .none : .unknown
        }
    }
}
