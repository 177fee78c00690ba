public import AssentCore
public import AssentSigningProtocol

/// What an app allows, and what it says of its device.
public struct SigningDeviceConfiguration: Sendable {
    /// The issuers that the app knows. With `nil` any issuer's invite is taken, and the app must show the user the
    /// issuer's host (``SigningInvite/host``) before it enrols: anyone who makes a QR code for a server of their own
    /// can make a valid one.
    public var issuers: Set<String>?

    /// How keys may be protected. An offer with another way is refused as `protectionPolicy`; without `.device` each
    /// key that approves must have a password.
    public var modes: Set<ProtectionMode> = [.device, .local, .assisted]

    /// How often a remembered password is used, besides the seconds that the server's policy gives.
    public var rememberedUses = 10

    /// What the device says of itself: texts of at most 64 characters.
    public var info = Info()

    /// Bounds of each exchange; a long poll adds its own time.
    public var limits = HTTPLimits(replyBytes: 256 << 10)

    /// How often a call that got no answer is sent again: 0 to 5, and more counts as 5. The server does it once. With
    /// `nil` it is sent again once where a lost answer would cost the user a try of a password or make a second record,
    /// otherwise not at all.
    public var retries: Int?

    /// Asks the user for the password that opens what the server sends, where a call needs it and was given none. The
    /// key that it opens, which signs nothing, is then kept in memory as long as the ``SigningDevice``, or until the
    /// password is changed or ``SigningContainer/forgetPasswords()`` is called; of the password nothing is kept for
    /// longer than the server's policy allows. Without it such a call stops with code `passwordRequired`.
    public var sessionPassword: SigningPasswordPrompt?

    /// A configuration.
    public init(issuers: Set<String>? = nil) {
        self.issuers = issuers
    }

    /// What a device says of itself. Nobody should take it for proof.
    public struct Info: Sendable, Hashable {
        /// The maker.
        public var brand: String?
        /// The model.
        public var model: String?
        /// The operating system.
        public var system: String?
        /// The language of the user (BCP 47).
        public var locale: String?

        /// Nothing.
        public init(brand: String? = nil, model: String? = nil, system: String? = nil, locale: String? = nil) {
            self.brand = brand
            self.model = model
            self.system = system
            self.locale = locale
        }
    }
}
