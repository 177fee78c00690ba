import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The request that a redirect asks for (RFC 9110 §15.4). Linux has no way to hand one over.
enum Redirection {
    /// Fields that another origin must not get.
    private static let credentials = ["Authorization", "Cookie", "X-TxID"]

    /// - Returns: `nil` for a reply that is not a redirect, or not one to an http address.
    static func next(after request: URLRequest, _ response: HTTPURLResponse) -> URLRequest? {
        guard [301, 302, 303, 307, 308].contains(response.statusCode), let base = request.url,
            let location = response.value(forHTTPHeaderField: "Location"),
            let url = URL(string: location, relativeTo: base)?.absoluteURL,
            ["http", "https"].contains(url.scheme?.lowercased() ?? "")
        else { return nil }
        var next = request
        next.url = url
        let method = request.httpMethod ?? "GET"
        let isOldHabit = response.statusCode < 303 && method == "POST"
        if isOldHabit || response.statusCode == 303 && method != "HEAD" {
            next.httpMethod = "GET"
            next.httpBody = nil
            for name in ["Content-Type", "Content-Length", "Idempotency-Key"] {
                next.setValue(nil, forHTTPHeaderField: name)
            }
        }
        if url.scheme != base.scheme || url.host != base.host || url.port != base.port {
            for name in credentials { next.setValue(nil, forHTTPHeaderField: name) }
        }
        return next
    }
}
