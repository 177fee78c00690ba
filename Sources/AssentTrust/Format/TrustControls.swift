package import AssentCore
package import AssentSigningProtocol

/// What happens when a probe of the app finds something.
package struct TrustControls: ShapedPart, Hashable {
    package let debugger: IntegrityControl
    package let rooted: IntegrityControl
    package let preload: IntegrityControl

    package static let shape = MessageShape<Self>(Self.init) {
        Member("debugger", \.debugger)
        Member("rooted", \.rooted)
        Member("preload", \.preload)
    }

    /// The same for the SDK.
    package var integrity: IntegrityControls {
        IntegrityControls(debugger: debugger, preload: preload, rooted: rooted)
    }
}

extension IntegrityControl: MemberValue {}
