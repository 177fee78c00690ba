@_exported public import AssentCore
@_exported public import AssentSigningProtocol
