/** Style sheets are bundled beside the module that imports them. */
declare module '*.css' {}
