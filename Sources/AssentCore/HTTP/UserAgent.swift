import HTTPTypes

/// Which version of Assent this is.
package enum AssentVersion {
    /// The version.
    package static let current = "0.1.0-dev"
}

/// On which platform this runs.
package enum HostPlatform {
    /// A short name in lower case.
    package static let name: String = {
        #if os(Linux)
        "linux"
        #elseif os(macOS)
        "macos"
        #elseif os(iOS)
        "ios"
        #elseif os(tvOS)
        "tvos"
        #elseif os(watchOS)
        "watchos"
        #elseif os(visionOS)
        "visionos"
        #elseif os(Android)
        "android"
        #elseif os(Windows)
        "windows"
        #else
        "other"
        #endif
    }()
}

/// Says in `User-Agent` which app, in which version, sends a call by this library, and on which platform. What the call
/// or a layer of the app says there stays.
package struct UserAgentMiddleware: HTTPMiddleware {
    /// The value of the field.
    package let value: String

    /// How long a part of it may be, in bytes.
    private static let limit = 64

    /// The field of an app. A version that nobody has said is left out.
    package init(app: String, version: String?, platform: String = HostPlatform.name) {
        let product = Self.token(app) + (version.map { "/\(Self.token($0))" } ?? "")
        value = "\(product) Assent/\(AssentVersion.current) (\(Self.token(platform)))"
    }

    package func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
        guard call.request.headerFields[.userAgent] == nil else { return try await next.send(call) }
        var call = call
        call.request.headerFields[.userAgent] = value
        return try await next.send(call)
    }

    /// A text as a token of HTTP (RFC 9110 §5.6.2): other characters are `-`.
    private static func token(_ text: String) -> String {
        let bytes = text.utf8.prefix(limit).map { byte -> UInt8 in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"),
                UInt8(ascii: "+"):
                byte
            default: UInt8(ascii: "-")
            }
        }
        return bytes.isEmpty ? "-" : String(decoding: bytes, as: UTF8.self)
    }
}
